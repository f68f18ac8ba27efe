-- When all of a ring was ok again after a release of it had failed, for the first time.
ALTER TABLE release ADD COLUMN restored BIGINT;
UPDATE release SET restored = (
	SELECT MIN(later.completed) FROM release later
	WHERE later.environment = release.environment AND later.ring = release.ring AND later.at >= release.at AND later.completed > release.failed
) WHERE failed IS NOT NULL;
