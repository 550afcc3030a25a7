"""What the product alone says: one command a reading, as a user who reads the row would type it.

Words       model, formats, optimizer, batch, tokens, adapters, loop, devices: what the row states,
            and what the program that it names does by default, as far as the command has an option
            for it. What neither says stays unsaid. Nothing is added to the answer by hand
Model       a preset, or a config.json in book/posted/configs with the sizes that were published;
            where its code is not in transformers (the first Qwen, Megatron-LM), as the family whose
            layers are nearest
Command     `memlab estimate`; `memlab trace` where a step or a call has no closed form
Length      where a row states only the most tokens, these. A peak of lengths that are not stated is
            not asked for. A generation is asked as the last of its tokens, a prompt that is not
            stated as none
fp16        of a call is typed as bf16: both take two bytes, and memlab describes calls in bf16
Not asked   torch.compile (`memlab trace --compile` plans a whole model, minutes for each), and what
            has no option at all
Figure      one rule for all sources, by the counter: see words.figure

Every mapping was written from the rows and committed before any of these commands was run.
"""
