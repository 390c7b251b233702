"""Files of a run that are no tables, through Hadoop: a folder and S3A are the same to it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_usage.errors import JobError


def literal_path(path: str) -> str:
    """A path to read tables from, in which nothing is a pattern to Spark."""
    return "".join(f"\\{each}" if each in "{}[]*?\\" else each for each in path)


class Storage:
    """Reads and writes small files by path or URI."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._jvm: Any = context._jvm
        self._configuration: Any = context._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Tells whether there is a file or a folder."""
        files, place = self._open(path)
        return bool(files.exists(place))

    def sizes(self, folder: str) -> dict[str, int]:
        """Bytes of each file in a folder by its name; nothing where there is no folder."""
        files, place = self._open(folder)
        if not files.exists(place):
            return {}
        return {
            str(status.getPath().getName()): int(status.getLen())
            for status in files.listStatus(place)
            if status.isFile()
        }

    def read(self, path: str) -> bytes:
        """A file's content. Raises `JobError` where there is none."""
        files, place = self._open(path)
        if not files.exists(place):
            message = f"there is no file {path}"
            raise JobError(message)
        stream = files.open(place)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def make_folder(self, path: str) -> None:
        """Makes a folder that was not there. Raises `JobError` where there is anything."""
        files, place = self._open(path)
        if files.exists(place):
            message = f"{path} exists: every run has an output folder of its own"
            raise JobError(message)
        files.mkdirs(place)

    def write(self, path: str, data: bytes) -> None:
        """Writes a file that then is there as a whole. Raises `JobError` where there is one."""
        files, place = self._open(path)
        _, unfinished = self._open(f"{path}.unfinished")
        stream = files.create(unfinished, False)
        try:
            stream.write(data)
        finally:
            stream.close()
        if files.exists(place) or not files.rename(unfinished, place):
            message = f"{path} exists"
            raise JobError(message)

    def _open(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        files = place.getFileSystem(self._configuration)
        # Its own checksum files beside ours would serve nobody.
        files.setWriteChecksum(False)
        return files, place
