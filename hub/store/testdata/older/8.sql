UPDATE transition SET folder = 3;
INSERT INTO folder_history (environment, folder, at, ring, base) VALUES (6, 3, 1700000000000, 8, 7), (6, 3, 1700000122000, 8, 16), (6, 3, 1700000244000, 8, 21);
