"""What holds for the tests of every layer."""

from functools import cache

import botocore.loaders
import botocore.session

# Each session would read the descriptions of the services anew: most of what a client costs.
botocore.session.create_loader = cache(botocore.loaders.create_loader)
