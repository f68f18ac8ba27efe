INSERT INTO ended_session (id, until) VALUES ('s1', 1800000000000);
