"""Why a request cannot be built, was not sent, or got no answer."""

from __future__ import annotations

from jobtrack.core.sentences import Sentence

# --- what may be put into a request -----------------------------------------------------------------

JOB_ID_NOT = Sentence("the job id may not be {job}")
JOB_ID_CONTROL = Sentence("the job id has a control character")
JOB_ID_LONG = Sentence("the job id has more than {most} characters")
NEEDS_PARAMETER = Sentence("table {table} needs the parameter {name}")
TOLD_PARAMETER = Sentence("the provider tells the parameter {name} of table {table}")
NO_SUCH_PARAMETER = Sentence("table {table} has no parameter {name}")
PARAMETER_MISFIT = Sentence("the parameter {name} of table {table} is not a {pattern}")
NEEDS_PAYLOAD = Sentence("the table needs a value at {place} of the payload")
NO_VALUE = Sentence("the table has no value for {name}")
NOT_WRITABLE = Sentence("null, a list or an object cannot be written into an address or a header")
PATH_NEEDS_ALL = Sentence("a path needs all of its values")
HEADER_ASCII = Sentence("a header can only hold printable ASCII characters")
SEGMENT_NOT = Sentence("a path segment may not be empty, '.' or '..'")
PATH_CONTROL = Sentence("a path may not have control characters")
SPANS_NOT = Sentence("a job id that spans path segments may not have '?', '#' or a backslash")
BODY_OPTIONAL = Sentence("the table leaves the whole body to an optional value, which is absent")
NEEDS_INTEGER = Sentence("the table needs {name} as an integer")

# --- where it goes ----------------------------------------------------------------------------------

NOT_ON_HOSTS = Sentence("an address of table {table} is not on one of its hosts with these parameters")
NO_STATUS_ADDRESS = Sentence("table {table} builds no status address and the operation has none")
NO_LOOK_UP = Sentence("table {table} has no look-up")
ADDRESS_NOT_ALLOWED = Sentence("the table {table} does not allow this address")
NO_CANCELLATION = Sentence("table {table} documents no cancellation")
NO_CANCEL_ADDRESS = Sentence("table {table} builds no address for a cancellation and the operation has none")
START_ADDRESS_OVER = Sentence("The address fixed at the start is no longer allowed by the table.")
ACCEPTED_ADDRESS_OVER = Sentence("The address fixed at the acceptance is no longer allowed by the table.")

# --- why it was not sent ----------------------------------------------------------------------------

STOOD_STILL = Sentence("The worker stood still after its claim.")
STOOD_STILL_BEFORE = Sentence("The worker stood still before its request.")
LOOK_UP_NOT_SENT = Sentence("The look-up was not sent.")
NO_THREAD = Sentence("no thread was free within the total time")
URL_UNREADABLE = Sentence("the URL cannot be read")
URL_ODD = Sentence("the URL holds a character that is not visible ASCII, or a backslash")
URL_USER = Sentence("the URL carries user information")
URL_DOTS = Sentence("the path has a dot segment")
URL_CONTROL = Sentence("the path has a control character")
URL_FRAGMENT = Sentence("the URL has a fragment, which is never sent")
URL_PORT = Sentence("the URL names no port that exists")
URL_NOT_HTTPS = Sentence("the URL is not https")
HOST_NUMBER = Sentence("the host is a number that the table does not list")
NOT_A_HOST = Sentence("{host} is not one of the table's hosts")
NOT_AN_ORIGIN = Sentence("{host} is not an origin of this operation")
PLAIN_HTTP = Sentence("plain http is for loopback only, where the table and ALLOW_LOOPBACK permit it")
NO_ADDRESS = Sentence("{host} resolves to something that is no address")
LOCALHOST_ELSEWHERE = Sentence("localhost does not resolve to this machine")
NOT_PUBLIC = Sentence("{host} resolves to an address that is not public")
OTHER_TABLE = Sentence("the request belongs to {provider} and not to table {table}")
FRAMING = Sentence("the table sets {names}, which belongs to the transport")
PROXY_HTTP = Sentence("plain http is never sent through a proxy")
PROXY_NAMES = Sentence("a proxy is asked for names only, and never for this machine")
PROXY_FORM = Sentence("a proxy is written http://host:port or http://user:password@host:port")
RECEIVER_DENIED = Sentence("the address may not be reached: it must be https, and public or opened by ALLOW_PRIVATE")

# --- why there is no credential ---------------------------------------------------------------------

NO_CREDENTIAL = Sentence("no credential is configured for account {account} of {provider}")
NO_REFERENCE = Sentence(
    "the credential of account {account} of {provider} is not a reference; "
    "write env:NAME, file:/path, setting:NAME or callable:dotted.path"
)
SECRET_EMPTY = Sentence("{reference} is empty")
SECRET_NO_TEXT = Sentence("{reference} is not valid text")
SECRET_ELSE = Sentence("{reference} holds something else: {why}")
ENV_NOT_SET = Sentence("env:{name} is not set")
SETTING_NOT_CONNECTED = Sentence("setting:{name} cannot be read here: no settings are connected")
SETTING_UNREADABLE = Sentence("setting:{name} cannot be read ({error})")
SETTING_NO_TEXT = Sentence("setting:{name} is missing or not text")
FILE_LINK = Sentence("file:{path} is a symbolic link")
FILE_NOT_OPENED = Sentence("file:{path} cannot be opened ({error})")
FILE_NOT_REGULAR = Sentence("file:{path} is not a regular file")
FILE_OPEN_TO_OTHERS = Sentence("file:{path} is open to group or others; set its mode to 0400 or 0600")
FILE_LARGE = Sentence("file:{path} is larger than {most} bytes")
FILE_NOT_UTF8 = Sentence("file:{path} is not UTF-8 text")
CALLABLE_FAILED = Sentence("callable:{path} failed ({error})")
CALLABLE_NO_TEXT = Sentence("callable:{path} returned no text")
SIGNER_FAILED = Sentence("signer {path} failed ({error})")
SECRET_IN_HEADER = Sentence("the credential holds characters that no header can carry")

# --- why there was no answer ------------------------------------------------------------------------

AT = Sentence("{request}: {what}")
NO_ANSWER = Sentence("no answer: {trouble}")
NAME_UNRESOLVED = Sentence("the name could not be resolved")
NO_CONNECTION = Sentence("no connection could be made")
CONNECTION_LATE = Sentence("the connection was not ready in time")
TLS_FAILED = Sentence("the TLS handshake failed")
CERTIFICATE = Sentence("the certificate is not accepted ({reason})")
NOT_WRITTEN = Sentence("the request could not be written")
SILENT = Sentence("the peer stayed silent too long")
TIME_OVER = Sentence("the total time was over")
ENDED_EARLY = Sentence("the connection ended before the answer was complete")
NO_HTTP = Sentence("the exchange was not proper HTTP")
NO_TUNNEL = Sentence("the proxy opened no tunnel (HTTP {code})")
HEAD_LONG = Sentence("the head of the answer is too long")
REFUSED = Sentence("the request was refused")
