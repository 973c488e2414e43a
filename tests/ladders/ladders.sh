#!/bin/sh
# ladders.sh - the predictions of recorded ladders stay within their bounds.
exec "$BUILD/tests/ladders" "${LADDERS:-tests/ladders/recordings}"
