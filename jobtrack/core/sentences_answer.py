"""What answers show and what they lack, as clauses: they stand alone in the audit, or inside a question."""

from __future__ import annotations

from jobtrack.core.sentences import Sentence

# --- what HTTP itself says --------------------------------------------------------------------------

CODE = Sentence("HTTP {code}")
TOO_MANY_REQUESTS = Sentence("HTTP 429: too many requests")
SERVER_FAILED = Sentence("HTTP {code}: the server failed")
NO_SUCH_JOB = Sentence("HTTP {code}: the provider does not know the job")
REDIRECT = Sentence("HTTP {code}: a redirect that the table does not declare")
REDIRECT_TO = Sentence("HTTP {code}: a redirect that the table does not declare to {address}")
REDIRECT_NOWHERE = Sentence("HTTP {code}: a redirect that the table does not declare to nowhere")
NOT_READ = Sentence("HTTP {code} is not a status that the table reads")
ACCESS_DENIED = Sentence("HTTP {code}: access denied")
NOT_FOUND = Sentence("HTTP {code}: not found")
NOT_MODIFIED = Sentence("HTTP 304, although no condition was sent")

# --- the body ---------------------------------------------------------------------------------------

OVERSIZED = Sentence("the body is larger than the limit")
UNDECODABLE = Sentence("the body has a Content-Encoding that cannot be undone")
NO_OBJECT = Sentence("the body is JSON, but not an object")
EMPTY = Sentence("the body is empty")
NOT_UTF8 = Sentence("the body is not UTF-8")
NOT_JSON = Sentence("the body is not JSON (line {line}, column {column})")
TOO_DEEP = Sentence("the body is nested deeper than {most} levels")
MEDIA_TYPE = Sentence("the media type is {media}, not JSON")
CHARSET = Sentence("the charset is {charset}, not UTF-8")
TOO_MANY_DIGITS = Sentence("the body has a number of more than {most} digits")
TOO_LONG_HERE = Sentence("the body has a number that is too long for this process")
TOO_LARGE = Sentence("the body has a number that is too large")
NO_NUMBER = Sentence("the body has {word}, which is not JSON")

# --- places in it -----------------------------------------------------------------------------------

ROOT = Sentence("the root")
TWICE_ON_THE_WAY = Sentence("a member on the way to {place} appears more than once")
TWICE_INSIDE = Sentence("a member inside {place} appears more than once")
NO_LIST = Sentence("no list at {place}")
SEVERAL_ITEMS = Sentence("more than one item at {place} matches")
NO_ITEM = Sentence("no item of the list is this job")

# --- the state --------------------------------------------------------------------------------------

NO_STATE = Sentence("no state at {place} ({gap})")
STATE_TYPE = Sentence("the state at {place} is not of type {type}")
UNKNOWN_STATE = Sentence("the state {shown} is not in the table")
UNKNOWN_STATE_NEAR = Sentence("the state {shown} is not in the table; the nearest declared one is {near}")
BY_RULE = Sentence("a rule of the table says {meaning}")
OTHER_JOB = Sentence("the answer is about job {shown}")
NO_ECHO = Sentence("the answer does not repeat the job id at {place}")

# --- what success must carry ------------------------------------------------------------------------

SUCCESS_WITHOUT = Sentence("success without {place} ({gap})")
SUCCESS_OF_TYPE = Sentence("success, but {place} is not of type {type}")
SUCCESS_EMPTY = Sentence("success, but {place} is empty")
SUCCESS_NO_URL = Sentence("success, but {place} is not an absolute URL")
SUCCESS_ONE_OF = Sentence("success must carry exactly one of {places}, it carries {count}")
RESULT_URL_DENIED = Sentence("the result URL at {place} points to {origin}, which the table does not allow")
NO_PLAIN_URL = Sentence("an address that is not a plain https URL")
KEPT_TOO_DEEP = Sentence("what is to be kept from {place} is nested more than {most} levels")
KEPT_TOO_LARGE = Sentence("what is to be kept has {count} bytes, over {most}")

# --- what an answer to a submission proves ----------------------------------------------------------

PRECONDITION = Sentence("HTTP 412: the precondition does not hold")
AND = Sentence("HTTP {code}, and {what}")
LISTED = Sentence("HTTP {code} is listed as {meaning}")
PROVES_NOTHING = Sentence("{what}; the table does not say what it proves")
BUT = Sentence("{what}, but {why}")
BUT_UNREADABLE = Sentence("{what}, but it cannot be read: {why}")
BUT_NO_END = Sentence("{what}, but it tells no end: {why}")
ITS_STATE = Sentence("its state is {word}")
SUBMITS_NO_MORE = Sentence("the table no longer says how jobs are submitted")

# --- how its job can be followed --------------------------------------------------------------------

NO_JOB_ID = Sentence("the answer has no job id")
SENT_NO_JOB_ID = Sentence("what was sent has no job id")
NOTHING_AT = Sentence("there is nothing at {place}")
NEITHER = Sentence("the value at {place} is neither a text nor an integer")
NO_SEGMENT = Sentence("the path at {place} has no segment {index}")
EMPTY_PATH = Sentence("the path at {place} is empty")
SEGMENT_NO_TEXT = Sentence("segment {index} of the path at {place} is no text")
NO_PARAMETER = Sentence("the value at {place} cannot be the parameter {name}")
BAD_HANDLE = Sentence("the handle at {place} has control characters or is too long")
ADDRESS_DENIED = Sentence("the address at {place} points to {origin}, which the table does not allow")
PATH_DENIED = Sentence("the table does not allow the path of the address at {place}")
SENT_ADDRESS_DENIED = Sentence("the address of the submission points to {origin}, which the table does not allow")
SENT_PATH_DENIED = Sentence("the table does not allow the path of the address of the submission")
NOT_FOLLOWABLE = Sentence("the job {job} cannot be followed: {why}")
NAMES_JOB = Sentence("{what} (the job is {job})")

# --- look-ups ---------------------------------------------------------------------------------------

ABSENT_IN_THE_MIDDLE = Sentence("HTTP {code} in the middle of a list proves nothing")
ABSENT_BY_CODE = Sentence("HTTP {code}: the provider has no such job")
ABSENT = Sentence("the provider shows no such job")
FOUND = Sentence("the provider has the job")
SEVERAL = Sentence("{count} jobs of this operation")
OURS_UNREADABLE = Sentence("a job of this operation is there, but {why}")
LOOKS_UP_NO_MORE = Sentence("the table has no look-up any more")
NO_OBJECT_AT_ALL = Sentence("the answer is no object")
FURTHER_PAGE = Sentence("there is a further page")
SAME_PAGE = Sentence("the next page is this one again")
PAGE_DENIED = Sentence("the next page is at an address that the table does not allow")
NEXT_PAGE_NEITHER = Sentence("what names the next page is neither a text nor an integer")
NEXT_PAGE_BAD = Sentence("what names the next page has control characters or is too long")
PAGES_USED_UP = Sentence("The list goes on after the last page that may be read.")

# --- cancellations ----------------------------------------------------------------------------------

CANCEL_ACCEPTED = Sentence("HTTP {code} is listed as a cancellation that was accepted")
CANCEL_REFUSED = Sentence("HTTP {code} is listed as a cancellation that was refused")
CANCEL_UNEXPLAINED = Sentence("{what}; the table does not say what it means for a cancellation")

# --- why a wish when to ask again is not valid ------------------------------------------------------

NEGATIVE = Sentence("negative")
NOT_AFTER_DATE = Sentence("an instant that is not after the answer's Date")
TOO_LONG = Sentence("longer than the table allows")
NO_WISHED_NUMBER = Sentence("not a number")
NO_WISHED_TEXT = Sentence("not a text")
NOT_UNDERSTOOD = Sentence("not understood")
