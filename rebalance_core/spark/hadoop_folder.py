"""An output folder on whatever file system Spark's Hadoop knows: hdfs, s3a, abfs, gs.

Exclusive creation is as strong as the store makes it: HDFS refuses the second writer, an S3 without
conditional writes may let both pass. The lock is read back after it is made for that reason.
"""

from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException

from rebalance_core.model.errors import UsageError
from rebalance_core.spark.older_sparks import arrow_of, context_of, is_condition


class HadoopFolder:
    """A folder reached through the driver's JVM; needs a session that is not Spark Connect."""

    def __init__(self, location: str, session: Any) -> None:
        self.location = location.rstrip("/")
        context = context_of(session)
        if context is None:
            raise UsageError(
                f"{self.location} is reached through Hadoop in a driver of one's own, and Spark "
                "Connect gives none; name a folder that this host and the executors share, or s3://"
            )
        self._jvm: Any = context._jvm
        configuration = context._jsc.hadoopConfiguration()
        self._files = self._path().getFileSystem(configuration)

    def table_location(self, name: str) -> str:
        """The URI of the table `name`."""
        return f"{self.location}/{name}"

    def make(self) -> None:
        """Create the folder; a no-op where folders are only prefixes."""
        self._files.mkdirs(self._path())

    def names(self) -> list[str]:
        """What lies in the folder; nothing if there is none."""
        if not self._files.exists(self._path()):
            return []
        return sorted(entry.getPath().getName() for entry in self._files.listStatus(self._path()))

    def read_text(self, name: str) -> str | None:
        """A small file, or None if it is not there."""
        if not self._files.exists(self._path(name)):
            return None
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create_text(self, name: str, text: str) -> None:
        """Create a small file; `FileExistsError` if it is there."""
        if self._files.exists(self._path(name)):
            raise FileExistsError(self.table_location(name))
        try:
            self._write(name, text, overwrite=False)
        except Exception as error:
            if "FileAlreadyExists" in str(error):
                raise FileExistsError(self.table_location(name)) from error
            raise

    def replace_text(self, name: str, text: str) -> None:
        """Write a small file over an earlier one."""
        self._write(name, text, overwrite=True)

    def delete(self, name: str) -> None:
        """Remove a file or a table."""
        self._files.delete(self._path(name), True)

    def _path(self, name: str = "") -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(
            self.table_location(name) if name else self.location
        )

    def _write(self, name: str, text: str, *, overwrite: bool) -> None:
        stream = self._files.create(self._path(name), overwrite)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()


def remote_files(location: str, session: Any) -> list[tuple[str, int]] | None:
    """Path and size of every file under a location that Spark's Hadoop knows; None: none such."""
    context = context_of(session)
    if context is None:
        return _listed(location, session)
    jvm: Any = context._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(context._jsc.hadoopConfiguration())
    if not files.exists(path):
        return None
    entries = files.listFiles(path, True)
    found = []
    while entries.hasNext():
        entry = entries.next()
        found.append((str(entry.getPath().toUri().getPath()), int(entry.getLen())))
    return found


def _listed(location: str, session: Any) -> list[tuple[str, int]] | None:
    """The same by Spark's reader, which passes over hidden files and reads none."""
    files = session.read.format("binaryFile").option("recursiveFileLookup", True)
    try:
        rows = arrow_of(files.load(location).select("path", "length")).to_pylist()
    except AnalysisException as error:
        if is_condition(error, "PATH_NOT_FOUND"):
            return None
        raise
    return [(urlsplit(row["path"]).path, row["length"]) for row in rows]
