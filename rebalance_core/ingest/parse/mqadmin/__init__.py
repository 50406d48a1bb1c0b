"""The output of mqadmin's commands, of 4.9 and of 5.x.

`output` reads what all commands have in common, errors above all; then there is a file for each
command. May import `parse.text`, `fact` and `refusal`. To begin: `cluster_list`.
"""
