"""What the page says of the questions after the verdict; loaded with the first of them."""

# The questions, as buttons.
LARGEST_BATCH = "Largest batch that fits"
LONGEST_SEQUENCE = "Longest sequence that fits"
MOST_USERS = "Most conversations that fit"
LONGEST_CONTEXT = "Longest context that fits"
WHICH_GPUS = "Which GPUs it fits"

# Their answers.
BATCH_FOUND = "Largest batch on {card}: {count}. Its peak is {size} of {limit}."
SEQUENCE_FOUND = "Longest sequence on {card}: {count} tokens. Its peak is {size} of {limit}."
NO_BATCH = "No batch fits {card}: a batch of {count} is {size} too large."
NO_SEQUENCE = "No sequence fits {card}: one of {count} tokens is {size} too large."
TIGHT_BATCH = "No batch surely fits {card}: a batch of {count} is tight."
TIGHT_SEQUENCE = "No sequence surely fits {card}: one of {count} tokens is tight."
POSITIONS_END = "The model has no more positions; memory does not end it."
BOUND_ENDS = "More fit, and no program has them: no larger batch is counted."
REPLAYED = (
    "The peak decides this, with {percent}% left for the allocator. The command below also replays "
    "the allocator, and its answer is smaller where the replay shows that the step is tight:"
)
USERS_FOUND = "Conversations of {each} tokens at once on {card}: {count}."
CONTEXT_FOUND = "Longest context of each of {users} conversations on {card}: {count} tokens."
CONTEXT_OF_ONE = "Longest context of one conversation on {card}: {count} tokens."
NO_USERS = "No conversation of {each} tokens fits {card}."
NO_CONTEXT = "No context of {users} conversations fits {card}."
NO_CONTEXT_OF_ONE = "No context of one conversation fits {card}."
NO_PEAK = "The peak of this step is not known to this page, and so what fits is not: {why}."
NO_TYPE = "What fits of a {family} is not known to this page: only what stays of it is counted."

# The table of GPUs.
GPUS_FOUND = "{fits} of {all} GPUs fit it, {tight} are tight."
GPUS_SERVE = "{fits} of {all} GPUs hold all conversations, {tight} hold some of them."
GPUS_HOLD_ONE = "{fits} of {all} GPUs hold this conversation."
GPU, MEMORY, VERDICT, MARGIN = "GPU", "memory", "verdict", "margin"
FITS, TIGHT, DOES_NOT_FIT, HOLDS_SOME = "✓ fits", "≈ tight", "✗ does not fit", "≈ holds some"
LEFT, TOO_MUCH = "{size} left", "{size} too much"
ROOM_FOR, STARTS_NOT = "room for {count}", "the engine does not start"
CHOSEN = "the chosen one"
EACH_LINE = "Each line is of {count} such GPUs."
ASKING = "Working it out …"
ALSO_ASKED = "Also asked"
TAKE = "Use this value"
