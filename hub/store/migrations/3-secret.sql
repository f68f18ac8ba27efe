-- Keys that all hubs of this database have in common.
CREATE TABLE secret (name TEXT PRIMARY KEY, value TEXT NOT NULL);
