INSERT INTO secret (name, value) VALUES ('session', 'sss');
