"""Lines of a log at given minutes, and the progress of a group."""

LINE = "2026-11-21 {} INFO t - register broker[0]to name server 1.1.1.1:9876 OK\n"
SECOND_MS, BEGIN_MS = 1_000, 1_795_230_000_000  # 2026-11-21 11:00:00 GMT+8
PROGRESS = (
    f"{'#Topic':64}  {'#Broker Name':32}  {'#QID':4}  {'#Broker Offset':20}  "
    f"{'#Consumer Offset':20}  {'#Client IP':20} {'#Diff':20}  #LastTime\n"
    f"{'T':64}  {'a':32}  {'0':4}  {'1':20}  {'1':20}  {'10.0.0.1':20} {'0':20}  N/A\n"
)


def lines(*minutes: int) -> str:
    """A line each half minute of these minutes after 11:00."""
    return "".join(
        LINE.format(f"11:{minute:02}:{second}") for minute in minutes for second in ("00", "30")
    )
