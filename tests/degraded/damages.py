"""Every kind of damage by its name.

A kind is a function of the files, which it changes, and the draw; it returns what it did in a few
words, none if the collection has nothing to damage so.
"""

from collections.abc import Callable

from tests.degraded import clocks, dump_forms, log_forms, losses, mixups, redaction, strangers
from tests.degraded.files import Draw, Files

Damage = Callable[[Files, Draw], str]

DAMAGES: dict[str, Damage] = {
    "files dropped": losses.files_dropped,
    "folder dropped": losses.folder_dropped,
    "round dropped": losses.round_dropped,
    "command missing": losses.command_missing,
    "command empty": losses.command_empty,
    "answers missing": losses.answers_missing,
    "answers empty": losses.answers_empty,
    "only dumps": losses.only_dumps,
    "dumps and stores": losses.dumps_and_stores,
    "log head": losses.log_head,
    "log tail": losses.log_tail,
    "log middle": losses.log_middle,
    "level raised": losses.level_raised,
    "lines lost": losses.lines_lost,
    "template lost": losses.template_lost,
    "dumps cut": losses.dumps_cut,
    "clock": clocks.clock_shifted,
    "clock of a broker": clocks.broker_clock,
    "clocks of all brokers": clocks.all_brokers_clock,
    "clock drifts": clocks.drift,
    "clock set": clocks.step,
    "clock of dumps": clocks.admin_clock,
    "clock of copies": clocks.store_clock,
    "pseudonyms": redaction.pseudonyms,
    "hex pseudonyms": redaction.hex_pseudonyms,
    "masked": redaction.masked,
    "renamed in logs": redaction.renamed_in_logs,
    "names escaped": redaction.escaped,
    "copies": redaction.copies,
    "column added": dump_forms.column_added,
    "columns moved": dump_forms.columns_moved,
    "rows refused": dump_forms.rows_refused,
    "shell noise": dump_forms.shell_noise,
    "terminal width": dump_forms.terminal_width,
    "blanks squeezed": dump_forms.blanks_squeezed,
    "tabs": dump_forms.tabs,
    "line cut": dump_forms.line_cut,
    "lines clipped": log_forms.clipped,
    "lines split": log_forms.split,
    "newest first": log_forms.newest_first,
    "csv": log_forms.as_csv,
    "gbk": log_forms.gbk,
    "nul blocks": log_forms.nul_blocks,
    "foreign file": strangers.foreign_file,
    "lists of others": strangers.lists_of_others,
    "folders swapped": strangers.folders_swapped,
    "no expected": strangers.no_expected,
    "old groups": strangers.old_groups,
    "answers swapped": mixups.answers_swapped,
    "answers of before": mixups.answers_of_before,
    "stores swapped": mixups.stores_swapped,
    "store of before": mixups.store_of_before,
    "store cut": mixups.store_cut,
    "clients swapped": mixups.clients_swapped,
    "logs merged": mixups.logs_merged,
    "logs doubled": mixups.logs_doubled,
    "lines sorted": mixups.lines_sorted,
    "bits lost": mixups.bits_lost,
    "lines glued": mixups.lines_glued,
    "packed": mixups.packed,
    "dates": mixups.dates_written_otherwise,
    "rows sorted": mixups.rows_sorted,
}
"""Take something away, or make it wrong."""

HARMLESS: dict[str, Damage] = {
    "shuffled": log_forms.shuffled,
    "wrapped": log_forms.wrapped,
    "syslog": log_forms.syslog,
    "utf-16": log_forms.utf_16,
    "cr cr lf": log_forms.cr_cr_lf,
}
"""Change the form alone."""

KINDS = DAMAGES | HARMLESS
