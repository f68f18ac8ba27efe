-- Sessions of people that were ended before their time, until when they would have held.
CREATE TABLE ended_session (id TEXT PRIMARY KEY, until BIGINT NOT NULL);
