"""The api's real handler on moto."""
