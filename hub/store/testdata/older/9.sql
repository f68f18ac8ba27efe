UPDATE release SET restored = 1700000366000 WHERE revision = 'c2';
