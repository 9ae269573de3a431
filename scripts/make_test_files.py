"""Makes the files in crates/rowmill-data/tests/files that other programs must have written.

Run once, in an environment with reportlab and pyarrow: python3 scripts/make_test_files.py
"""

import base64
import pathlib

import pyarrow
import pyarrow.parquet
import pyarrow.parquet.encryption as encryption
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

FILES = pathlib.Path(__file__).parent.parent / "crates" / "rowmill-data" / "tests" / "files"
LINES = [
    ("STSong-Light", "你好，世界 Hello"),
    ("HeiseiMin-W3", "こんにちは世界"),
    ("HYSMyeongJo-Medium", "안녕하세요"),
    ("MSung-Light", "繁體中文"),
]


class Keys(encryption.KmsClient):
    """Keeps keys with the file: nothing here is secret."""

    def __init__(self, _):
        super().__init__()

    def wrap_key(self, key, _):
        return base64.b64encode(key)

    def unwrap_key(self, wrapped, _):
        return base64.b64decode(wrapped)


def main():
    page = canvas.Canvas(str(FILES / "cjk.pdf"), pageCompression=1)
    for place, (font, text) in enumerate(LINES):
        pdfmetrics.registerFont(UnicodeCIDFont(font))
        page.setFont(font, 14)
        page.drawString(50, 800 - 40 * place, text)
    page.save()

    table = pyarrow.table({"a": [1, 2], "b": ["x", "y"]})
    settings = encryption.EncryptionConfiguration(footer_key="k", column_keys={"c": ["b"]}, plaintext_footer=True)
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    path = FILES / "encrypted-columns.parquet"
    with pyarrow.parquet.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    main()
