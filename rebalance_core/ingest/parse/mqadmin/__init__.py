"""The output of mqadmin's commands, of 4.9 and of 5.x.

`command_output` reads what all commands have in common, errors above all; each command has a file
of its own. May import `parse.text`, `fact` and `refusal`. Begin with `cluster_list`.
"""
