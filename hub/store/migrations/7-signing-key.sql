-- The public key that the secret of a token stands for, in hexadecimal digits; '' for a token of before.
ALTER TABLE token ADD COLUMN signing_key TEXT NOT NULL DEFAULT '';
