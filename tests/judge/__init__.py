"""A judge of random answers: what the library says, held against attacks and dominating pairs.

`profiles`, `outcomes`, `noises` and `truths` are the oracles and know nothing of the library: they
write the output distributions of each mechanism on concrete neighbouring data, and of pairs that
dominate all others where such are known, straight from the definitions. `plans` draws mechanisms,
`questions` asks the library about them, and `verdicts` compares.
"""
