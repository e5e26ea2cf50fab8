"""Why the result of a job that succeeded is not there."""

from __future__ import annotations

from jobtrack.core.sentences import Sentence

NOT_FETCHED = Sentence("The job succeeded, but its result cannot be fetched.")
NOTHING_TO_FETCH = Sentence("There is no result to fetch: the job has not succeeded, or the table names no result.")
TRIES_USED = Sentence("The tries granted are used up.")
READS_USED = Sentence("The status reads granted are used up.")
TIME_OVER = Sentence("The time for one try is over.")
OWN_ERROR = Sentence("The try ended with an error of its own ({error}).")
STORAGE_FAILED = Sentence("The storage failed ({error}).")

# --- the way to it ----------------------------------------------------------------------------------

STATUS_ADDRESS_OVER = Sentence("The status address is no longer allowed by the table.")
TOLD_OTHERWISE = Sentence("The job is now told to be {kind}, although it had succeeded.")
STATUS_UNUSABLE = Sentence("The status read for it was not usable ({kind}, HTTP {code}).")
STATUS_UNANSWERED = Sentence("The status read for it was not usable ({kind}, no answer).")
NO_ITEM = Sentence("The status answer holds no item of this job.")
NO_RESULT_THERE = Sentence("The status answer holds no result where the table says.")
ROOT = Sentence("its root")
NO_LIST = Sentence("The answer has no list at {place}.")
PLACE_UNREADABLE = Sentence("The place {place} of the answer cannot be read.")
LACKS = Sentence("The answer lacks {name}, which the next request needs.")
VALUE_MISFIT = Sentence("A value of the answer cannot be put into the next request.")
NO_JSON = Sentence("A document on the way to the result is not JSON.")
NO_LINK = Sentence("The answer holds no link to the result.")
ADDRESS_DENIED = Sentence("The result is at an address that the table does not allow.")

# --- pages ------------------------------------------------------------------------------------------

NEXT_UNREADABLE = Sentence("The place that names the next page cannot be read.")
NEXT_DENIED = Sentence("The next page is at an address that the table does not allow.")
PAGES_REPEAT = Sentence("The pages of the result repeat themselves.")
PAGES_GO_ON = Sentence("The result goes on after {count} pages.")
PAGE_LARGE = Sentence("A page is too large to be searched for the one after it.")

# --- answers and files ------------------------------------------------------------------------------

NO_ANSWER = Sentence("There was no answer.")
NO_ANSWER_FOR = Sentence("There was no answer ({trouble}).")
ANSWERED = Sentence("The answer was HTTP {code}.")
REDIRECT_DENIED = Sentence("The answer was HTTP {code}, a redirect that the table does not allow.")
REDIRECTED_TOO_OFTEN = Sentence("The file was redirected too often.")
ANSWER_LARGE = Sentence("The answer is larger than allowed.")
UNDECODABLE = Sentence("The answer has a Content-Encoding that cannot be undone.")
OTHER_PART = Sentence("The answer holds another part of the file than was asked for.")
DOWNLOAD_REFUSED = Sentence("The download was refused.")
TYPE_DENIED = Sentence("The file has the type {type}, which the table does not allow.")
FILE_SHORT = Sentence("The file is shorter than the provider said.")
FILE_EMPTY = Sentence("The file is empty.")
NO_FILES = Sentence("The result has no files.")
EMPTY = Sentence("The result is empty.")
MEMBER_TWICE = Sentence("A member of the result appears more than once.")
BYTES_MANY = Sentence("The result has {count} bytes, more than the {most} allowed.")
BYTES_OVER = Sentence("The result has more than the {most} bytes allowed.")
