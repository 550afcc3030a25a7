"""One rank of several: data, tensor, context, expert and pipeline parallelism, a file a scheme."""
