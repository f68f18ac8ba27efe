-- What tells a cluster from another one of its name, the one before it, and when one came back after the other.
ALTER TABLE cluster ADD COLUMN uid TEXT NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN uid_before TEXT NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN conflict BIGINT NOT NULL DEFAULT 0;
