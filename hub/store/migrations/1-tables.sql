-- Texts are kept once. All other tables name them by their id, which is small: 10,000,000 transitions name ten each.
CREATE TABLE term (id INT PRIMARY KEY, text TEXT NOT NULL UNIQUE);

-- The last change has this number. Whoever writes holds the row. tallied is the number of the last change of tallies. cleared counts how
-- often texts were removed, cleaned is when that was begun, and swept is the last transition that was looked at to remove what it replaced.
CREATE TABLE change (number BIGINT NOT NULL, tallied BIGINT NOT NULL, cleared BIGINT NOT NULL, cleaned BIGINT NOT NULL, swept BIGINT NOT NULL);
INSERT INTO change (number, tallied, cleared, cleaned, swept) VALUES (0, 0, 0, 0, 0);

-- What is wanted of each environment: compressed JSON.
CREATE TABLE wanted (environment TEXT PRIMARY KEY, tip TEXT NOT NULL, content BYTEA NOT NULL, position INT NOT NULL, change BIGINT NOT NULL);

-- The same as rows, for the views.
CREATE TABLE wanted_target (
	environment INT NOT NULL, folder INT NOT NULL, target INT NOT NULL,
	cluster_type INT NOT NULL, ring INT NOT NULL, workload INT NOT NULL, version INT NOT NULL, base INT NOT NULL, digest INT NOT NULL,
	PRIMARY KEY (environment, folder, target)
) /* WITHOUT ROWID */;

-- The last news of each cluster. Times are milliseconds since 1970.
CREATE TABLE cluster (name TEXT PRIMARY KEY, seen BIGINT NOT NULL, snapshot BIGINT NOT NULL, digest TEXT NOT NULL, partial SMALLINT NOT NULL, reporter TEXT NOT NULL, change BIGINT NOT NULL);
CREATE INDEX cluster_change ON cluster (change);

-- Each assignment on each cluster, as it is now.
CREATE TABLE assignment (
	environment INT NOT NULL, cluster INT NOT NULL, target INT NOT NULL, folder INT NOT NULL,
	state SMALLINT NOT NULL, changed BIGINT NOT NULL,
	reported SMALLINT NOT NULL, ran INT NOT NULL, digest INT NOT NULL, revision INT NOT NULL, path INT NOT NULL, message INT NOT NULL, reporter INT NOT NULL, observed BIGINT NOT NULL, since BIGINT NOT NULL,
	change BIGINT NOT NULL,
	PRIMARY KEY (environment, cluster, target)
) /* WITHOUT ROWID */;
CREATE INDEX assignment_change ON assignment (change);

-- What changed, one row for each change of an assignment on a cluster. A state of -1 says that it is wanted no more.
CREATE TABLE transition (
	change BIGINT PRIMARY KEY, at BIGINT NOT NULL,
	environment INT NOT NULL, workload INT NOT NULL, cluster INT NOT NULL, target INT NOT NULL, cluster_type INT NOT NULL,
	was SMALLINT NOT NULL, state SMALLINT NOT NULL, version INT NOT NULL, wanted INT NOT NULL, ran INT NOT NULL, revision INT NOT NULL, message INT NOT NULL
);
-- It has all that finding the last transitions before a time takes.
CREATE INDEX transition_workload ON transition (environment, workload, change, at, cluster, target);
CREATE INDEX transition_cluster ON transition (cluster, change);

-- How many assignments were in each state, from a time on, of all that have a part in common. closed is 0 while there are any; the last tally, from
-- newest on, has none otherwise.
CREATE TABLE part (
	id INT PRIMARY KEY, environment INT NOT NULL, ring INT NOT NULL, cluster_type INT NOT NULL, workload INT NOT NULL, version INT NOT NULL, base INT NOT NULL,
	opened BIGINT NOT NULL, newest BIGINT NOT NULL, closed BIGINT NOT NULL,
	UNIQUE (environment, ring, cluster_type, workload, version, base)
);
CREATE INDEX part_closed ON part (closed);
CREATE TABLE tally (
	part INT NOT NULL, at BIGINT NOT NULL,
	ok INT NOT NULL, progressing INT NOT NULL, behind INT NOT NULL, drifted INT NOT NULL, stale INT NOT NULL, missing INT NOT NULL, failed INT NOT NULL,
	PRIMARY KEY (part, at)
) /* WITHOUT ROWID */;

-- The commits that each ring had: what was promoted, and how it went.
CREATE TABLE release (
	environment TEXT NOT NULL, ring TEXT NOT NULL, revision TEXT NOT NULL, base TEXT NOT NULL, own TEXT NOT NULL,
	author TEXT NOT NULL, subject TEXT NOT NULL, committed BIGINT NOT NULL, at BIGINT NOT NULL,
	completed BIGINT, failed BIGINT,
	PRIMARY KEY (environment, ring, revision)
);

-- Who may do what. A token itself is never kept, only its SHA-256.
CREATE TABLE token (
	id TEXT PRIMARY KEY, hash TEXT NOT NULL, role TEXT NOT NULL, cluster TEXT NOT NULL, environment TEXT NOT NULL, note TEXT NOT NULL,
	made BIGINT NOT NULL, made_by TEXT NOT NULL, expires BIGINT NOT NULL, used BIGINT NOT NULL, revoked BIGINT NOT NULL,
	ended BIGINT NOT NULL DEFAULT 0 -- what token_ended was made when it was revoked
);
CREATE INDEX token_cluster ON token (cluster);
CREATE INDEX token_ended_after ON token (ended);
CREATE TABLE token_ended (number BIGINT NOT NULL);
INSERT INTO token_ended (number) VALUES (0);

-- Who did what.
CREATE TABLE audit (number BIGINT PRIMARY KEY, at BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL);

-- What was sent to people, so that nothing is sent twice.
CREATE TABLE notification (key TEXT PRIMARY KEY, at BIGINT NOT NULL, reference TEXT NOT NULL);
