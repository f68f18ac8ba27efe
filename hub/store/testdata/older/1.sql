-- What the first hub wrote: two clusters, and three releases of which one failed.
INSERT INTO term (id, text) VALUES
	(1, '1.0.0'),
	(2, 'digest-c1'),
	(3, 'edge'),
	(4, 'hello'),
	(5, 'hello-main'),
	(6, 'prod'),
	(7, 's-c1'),
	(8, 'wide'),
	(9, ''),
	(10, 'berlin'),
	(11, 'oslo'),
	(12, 'c1'),
	(13, 'flux'),
	(14, '1.1.0'),
	(15, 'digest-c2'),
	(16, 's-c2'),
	(17, 'ImagePullBackOff: it''s not there'),
	(18, 'c2'),
	(19, '1.2.0'),
	(20, 'digest-c3'),
	(21, 's-c3'),
	(22, 'c3'),
	(23, 'OOMKilled');
DELETE FROM change;
INSERT INTO change (number, tallied, cleared, cleaned, swept) VALUES (30, 30, 0, 0, 0);
INSERT INTO wanted (environment, tip, content, position, change) VALUES ('prod', 'c3', X'1f8b08000000000000ff9492316fdb301085f7fe8ae2cd942d4a49066e6dd06c418336538b0cb47496d9523c813cc7090cfdf7825202db010cb8da8e7af7de47deedf12d3cbbc8a1a720301822b750f8410327271c5f61b0111992592e3b270b7ab1fde069d1709f6b1e1214be461b9acda1fbc14aaea0f053aca72f6ba10853df94874fe1de8559736f5feeacf3d4c2940adf7d9bc56beb1329dc72df3b4930bff7702d0c9a1a0ae27a8241555675a175a1af1e2b6dae6fcc55f90b0a762b1b8e30b02140216d577fa8c9777b88dcb3d0e7c923bad0cdbec14e6e3bd712145636e52a15938a7719920a8df16954ef0cd559866b535ec8505dc4507d6050d8d904b307b51d2d37e43d17bd9d5eb2751d25c92de381549f25ad4d7521a9be8854ff3fa9c69875779c477ee29e7ba0d0f86d128a8fafc3d1614639372eb1b12339b13a4a56d871fcebd9b6efe75078a6981c672cbda81625d41bde11673d5dc7bb247947256e29d7b733dc49d88aa29f82d63caff10c9de7f1a6e034a57ef8ff347efa170000ffff42d2b37c89030000', 0, 19);
INSERT INTO wanted_target (environment, folder, target, cluster_type, ring, workload, version, base, digest) VALUES (6, 3, 5, 3, 8, 4, 19, 21, 20);
INSERT INTO cluster (name, seen, snapshot, digest, partial, reporter, change) VALUES
	('berlin', 1700000245000, 1700000245000, 'sha256:berlin', 0, 'flux', 23),
	('oslo', 1700000427000, 1700000427000, 'sha256:oslo', 0, 'flux', 29);
INSERT INTO assignment (environment, cluster, target, folder, state, changed, reported, ran, digest, revision, path, message, reporter, observed, since, change) VALUES
	(6, 10, 5, 3, 0, 1700000245000, 1, 20, 9, 22, 9, 9, 13, 1700000245000, 0, 22),
	(6, 11, 5, 3, 6, 1700000427000, 4, 20, 9, 22, 9, 23, 13, 1700000427000, 0, 28);
INSERT INTO transition (change, at, environment, workload, cluster, target, cluster_type, was, state, version, wanted, ran, revision, message) VALUES
	(2, 1700000000000, 6, 4, 10, 5, 3, -1, 5, 1, 2, 9, 9, 9),
	(3, 1700000000000, 6, 4, 11, 5, 3, -1, 5, 1, 2, 9, 9, 9),
	(4, 1700000001000, 6, 4, 10, 5, 3, 5, 0, 1, 2, 2, 12, 9),
	(7, 1700000062000, 6, 4, 11, 5, 3, 5, 0, 1, 2, 2, 12, 9),
	(11, 1700000122000, 6, 4, 10, 5, 3, 0, 2, 14, 15, 2, 12, 9),
	(12, 1700000122000, 6, 4, 11, 5, 3, 0, 2, 14, 15, 2, 12, 9),
	(13, 1700000123000, 6, 4, 10, 5, 3, 2, 6, 14, 15, 15, 18, 17),
	(16, 1700000184000, 6, 4, 11, 5, 3, 2, 0, 14, 15, 15, 18, 9),
	(20, 1700000244000, 6, 4, 10, 5, 3, 6, 2, 19, 20, 15, 18, 17),
	(21, 1700000244000, 6, 4, 11, 5, 3, 0, 2, 19, 20, 15, 18, 9),
	(22, 1700000245000, 6, 4, 10, 5, 3, 2, 0, 19, 20, 20, 22, 9),
	(25, 1700000306000, 6, 4, 11, 5, 3, 2, 0, 19, 20, 20, 22, 9),
	(28, 1700000427000, 6, 4, 11, 5, 3, 0, 6, 19, 20, 20, 22, 23);
INSERT INTO part (id, environment, ring, cluster_type, workload, version, base, opened, newest, closed) VALUES
	(1, 6, 8, 3, 4, 1, 7, 1700000061000, 1700000183000, 1700000183000),
	(2, 6, 8, 3, 4, 14, 16, 1700000183000, 1700000305000, 1700000305000),
	(3, 6, 8, 3, 4, 19, 21, 1700000305000, 1700000427000, 0);
INSERT INTO tally (part, at, ok, progressing, behind, drifted, stale, missing, failed) VALUES
	(1, 1700000061000, 1, 0, 0, 0, 0, 1, 0),
	(1, 1700000122000, 2, 0, 0, 0, 0, 0, 0),
	(1, 1700000183000, 0, 0, 0, 0, 0, 0, 0),
	(2, 1700000183000, 0, 0, 1, 0, 0, 0, 1),
	(2, 1700000244000, 1, 0, 0, 0, 0, 0, 1),
	(2, 1700000305000, 0, 0, 0, 0, 0, 0, 0),
	(3, 1700000305000, 1, 0, 1, 0, 0, 0, 0),
	(3, 1700000366000, 2, 0, 0, 0, 0, 0, 0),
	(3, 1700000427000, 1, 0, 0, 0, 0, 0, 1);
INSERT INTO release (environment, ring, revision, base, own, author, subject, committed, at, completed, failed) VALUES
	('prod', 'wide', 'c1', 's-c1', 'e-1', 'ann', 'Promote c1', 1699999000000, 1699999000000, 1700000122000, NULL),
	('prod', 'wide', 'c2', 's-c2', 'e-1', 'ann', 'Promote c2', 1699999000000, 1700000122000, NULL, 1700000183000),
	('prod', 'wide', 'c3', 's-c3', 'e-1', 'ann', 'Promote c3', 1699999000000, 1700000244000, 1700000366000, 1700000427000);
INSERT INTO token (id, hash, role, cluster, environment, note, made, made_by, expires, used, revoked, ended) VALUES
	('t1', 'aa', 'cluster', 'berlin', 'prod', 'the first', 1700000000000, 'ann', 1800000000000, 1700000001000, 0, 0),
	('t2', 'bb', 'viewer', '', '', '', 1700000001000, 'ann', 0, 0, 1700000002000, 1);
UPDATE token_ended SET number = 1;
INSERT INTO audit (number, at, who, action, subject, detail) VALUES (1, 1700000002000, 'ann', 'revoke', 't2', 'it was lost');
INSERT INTO notification (key, at, reference) VALUES ('failure/prod', 1700000183000, 'sent');
