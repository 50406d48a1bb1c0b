"""What the formats have in common: line heads, clocks, zones, fastjson, rendered Java objects.

May import `fact`, `refusal` and `model`. Begin with `log_line` for logs, `json_tables` for stores,
`printf_rows` for mqadmin.
"""
