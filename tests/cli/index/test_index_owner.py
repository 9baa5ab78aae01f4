# SPDX-License-Identifier: MIT
"""Whose indexes are used: files of others, and what is no file"""

import os

import support
from index_support import HandMade, NOBODY


class Owner(HandMade):
    """An index that somebody else may have made."""

    def test_no_regular_file(self):
        index = self.index_of(self.trace)

        def forget():
            if os.path.isdir(index):
                os.rmdir(index)
            else:
                os.unlink(index)

        for what, make in (("directory", lambda: os.mkdir(index)),
                           ("FIFO", lambda: os.mkfifo(index)),
                           ("zeros", lambda: os.symlink("/dev/zero", index)),
                           ("noise", lambda: os.symlink("/dev/urandom", index)),
                           ("loop", lambda: os.symlink(index, index)),
                           ("itself", lambda: os.symlink(self.trace, index))):
            make()
            with self.subTest(what):
                self.assertEqual(self.said(self.trace, *self.ask), self.expected)
                status, _, errors = self.said(self.trace, "index")
                self.assertEqual(status, support.INTERNAL)
                self.assertIn("is not an index, and is not overwritten", errors)
                self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
            forget()
        os.symlink(self.path("nowhere"), index)
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)
        self.assertEqual(self.said(self.trace, "index")[0], support.INTERNAL)
        self.assertTrue(os.path.islink(index))
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])

    def test_of_other_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        self.lie()
        index = self.index_of(self.trace)
        self.assertTrue(self.is_believed())
        os.chown(index, NOBODY, -1)
        self.assertFalse(self.is_believed())
        os.chown(self.trace, NOBODY, -1)
        self.lie()
        os.chown(index, NOBODY, -1)
        self.assertTrue(self.is_believed())
        os.chown(self.trace, 0, -1)
        self.assertEqual(self.said(self.trace, *self.ask),
                         (*self.expected[:2], f"ttdanalyze: warning: {index}: is not used: it "
                                              "belongs to another user\n"))

    def test_that_others_can_write(self):
        self.lie()
        index = self.index_of(self.trace)
        for mode in (0o600, 0o640, 0o644, 0o400, 0o620, 0o602, 0o666):
            os.chmod(index, mode)
            self.assertEqual(self.is_believed(), not mode & 0o022, oct(mode))
        self.assertEqual(self.said(self.trace, *self.ask),
                         (*self.expected[:2], f"ttdanalyze: warning: {index}: is not used: it "
                                              "can be written by other users\n"))
        self.assertEqual(self.said(self.trace, self.ask[0], "--no-index", *self.ask[1:]),
                         self.expected)
        self.run_ok("index", self.trace)
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)


if __name__ == "__main__":
    support.main()
