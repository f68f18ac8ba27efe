UPDATE cluster SET uid = 'u1', uid_before = 'u0', conflict = 1700000245000 WHERE name = 'berlin';
