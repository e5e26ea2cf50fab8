"""Why a person is asked, or why something cannot be done for now: whole sentences, often several in a row."""

from __future__ import annotations

from jobtrack.core.sentences import Sentence

# --- limits -----------------------------------------------------------------------------------------

NOTHING_YET = Sentence("nothing yet")
NEEDED_BY = Sentence("The result was needed by {instant}; the provider's last word is: {last}.")
DEADLINE_PASSED = Sentence("The deadline {instant} has passed; the provider's last word is: {last}.")
REQUESTS_USED = Sentence("All {most} status requests are used; the provider's last word is: {last}.")
RATE_LIMITED = Sentence("{count} answers said: too many requests.")
STOPS_ON = Sentence("The table stops at once on {trouble}: {why}")
REQUESTS_FAILED = Sentence("{count} requests failed; the last one: {why}")
OVERDUE = Sentence("The job says {word} although its own expiry has passed.")
STALLED = Sentence("The job has said {word} since {instant}.")
ASKED_TO_WAIT = Sentence("The provider asked to wait {wait}; the account is held for {longest} at most.")
DAY_AND_CLOCK = Sentence("{count} day, {clock}")
DAYS_AND_CLOCK = Sentence("{count} days, {clock}")
NO_TABLE = Sentence("No worker has a usable table {table} of revision {count} or newer.")

# --- how long a provider keeps things ---------------------------------------------------------------

KEPT_JOB = Sentence("The provider kept the job until {instant} only.")
KEEPS_JOB = Sentence("The provider keeps the job until {instant}.")
KEEPS_RESULT_FOR = Sentence("The provider keeps a result for {length} after the job has ended.")
KEPT_RESULTS = Sentence("The provider kept results until {minute} only.")
KEEPS_RESULT = Sentence("The provider keeps the result until {minute}.")

# --- contradictions ---------------------------------------------------------------------------------

ENDED_OTHERWISE = Sentence("The operation has ended as {state}; a late answer says {late}.")
ENDED_AND_NAMES = Sentence("The operation has ended as {state}; a late answer names its job {job}.")
ENDED_AND_HAS_JOB = Sentence(
    "The operation has ended as {state}; a late answer says that the provider has a job of it."
)
OTHER_JOB = Sentence("The operation follows the job {known}; a late answer to its submission names {job}.")
OTHER_ADDRESS = Sentence(
    "The operation follows its job at one address; a late answer to its submission gives another one."
)
SAME_ID = Sentence("The same operation id was used again with other content; that submission was refused and not sent.")

# --- what must never be written ---------------------------------------------------------------------

NEVER_BECOMES = Sentence("{before} never becomes {after}.")
NEVER_OTHER_JOB = Sentence("An operation never changes its job.")
NEVER_OTHER_ACCEPTANCE = Sentence("The instant of acceptance never changes.")

# --- submissions ------------------------------------------------------------------------------------

WORKER_ENDED = Sentence("The worker ended before an answer was written.")
HAS_A_JOB = Sentence("A late answer says that the provider has a job of it.")
NAMED_JOB = Sentence("A late answer named the job.")
NO_USABLE_ANSWER = Sentence("There was no usable answer.")
NOT_SUBMITTABLE = Sentence("The table {table} no longer says how jobs are submitted.")
SUBMIT_BY = Sentence("It was to be submitted by {instant}.")
SUBMISSIONS_USED = Sentence("All {most} submission requests are used.")
NO_JOB_AND_NO_MORE = Sentence("The provider has no job of it, and the limits allow no further request.")
NOT_ACCEPTED = Sentence("{count} requests were not accepted; the last one: {why}")
REPEAT_REFUSED = Sentence("A repeat was refused ({why}), which says nothing about the attempt before.")
SEVERAL_JOBS = Sentence("The provider has several jobs of this operation: {jobs}.")
WITHOUT_ID = Sentence("one without an id")
BYTES_GONE = Sentence("What was to be sent is no longer kept, so it cannot be sent again.")
UNKNOWN = Sentence("Nobody knows whether the provider accepted it: {why}.")
SEEN = Sentence("The provider said that it has a job of this operation; submitting again would make a second one.")
LOOKED = Sentence("{count} look-ups did not settle it.")
LOOKED_LAST = Sentence("{count} look-ups did not settle it: {why}.")
SHOWN = Sentence("A page that could be read shows the job {jobs}.")
ABSENCE_NO_PROOF = Sentence("That a look-up finds nothing is no proof at this provider.")
NO_LOOK_UP = Sentence(
    "The provider offers no look-up: nothing can prove it from here; its own console may show the job."
)
KEY_HOLDS = Sentence("Its idempotency key holds until {instant}.")
MAY_BE_TWICE = Sentence("A second submission may make a second job and cost twice.")

# --- cancellations ----------------------------------------------------------------------------------

NO_TABLE_HERE = Sentence("There is no usable table {table} on this machine.")
CANCELS_NOT = Sentence("The table {table} documents no cancellation.")
CANCELS_NO_MORE = Sentence("The table {table} no longer documents a cancellation.")
HAS_ENDED = Sentence("The operation has ended: {state}.")
NOTHING_SUBMITTED = Sentence(
    "Nothing has been submitted yet: there is no job to cancel. Abandon the operation instead."
)
NO_KNOWN_JOB = Sentence("It is not known whether the provider has a job: there is nothing to cancel by name.")
CANCELS_BY_ID = Sentence("The provider gave no job id, and this table cancels by it.")
CANCEL_ASKED = Sentence("A cancellation has been asked for already.")
CANCEL_ACCEPTED = Sentence("The provider has accepted a cancellation; a status answer will say what became of the job.")
CANCEL_MAY_BE_HEARD = Sentence(
    "A cancellation may have been heard already, and sending it twice is not known to be harmless."
)
CANCEL_LOST = Sentence("An earlier attempt may have been heard; its answer is lost.")
CANCEL_UNTOLD = Sentence("The answer does not tell whether the cancellation was heard.")
CANCEL_UNKNOWN = Sentence("Nobody knows whether the provider heard the cancellation.")
CANCEL_NOT_AGAIN = Sentence("It was sent once, and cannot be sent again: {why}")
CANCEL_NOT_SENT = Sentence("The cancellation could not be sent: {why}")
NOT_SENT = Sentence("The request could not be sent.")
HELD_BACK = Sentence("The account is held back.")

# --- follow-ups and errands -------------------------------------------------------------------------

ERRAND_FAILED = Sentence("The errand {event} failed {count} times.")
FOLLOW_UP_FAILED = Sentence("The follow-up {event} failed {count} times; the last error: {why}")
NEVER_CAME_BACK = Sentence("the handler never came back; its process ended or hung")
NOBODY_ACTED = Sentence("Nobody acted for {wait}: what the site set for this.")

# --- what is kept encrypted -------------------------------------------------------------------------

SEAL_UNREADABLE = Sentence("What this operation keeps encrypted cannot be read with this site's keys.")
SEAL_OF_ANOTHER = Sentence("What this operation keeps encrypted belongs to another operation.")
SEAL_NO_KEY = Sentence("There is no key to seal with.")
SEAL_EMPTY_KEY = Sentence("A key to seal with is empty.")

# --- decisions that cannot be taken -----------------------------------------------------------------

JOB_NOT_FOLLOWABLE = Sentence("This job cannot be followed: {why}.")
JOB_TAKEN = Sentence("the operation {operation} has this job already")
NO_QUESTION = Sentence("There is no escalation {question}.")
NO_OPERATION = Sentence("There is no operation {operation}.")
