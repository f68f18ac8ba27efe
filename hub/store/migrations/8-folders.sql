-- The folder of the cluster at a transition; 0 where it is not known, as of those that another one replaced before this.
ALTER TABLE transition ADD COLUMN folder INT NOT NULL DEFAULT 0;
UPDATE transition SET folder = (SELECT a.folder FROM assignment a WHERE a.environment = transition.environment AND a.cluster = transition.cluster AND a.target = transition.target)
WHERE state <> -1 AND change IN (SELECT MAX(change) FROM transition GROUP BY environment, cluster, target)
AND EXISTS (SELECT 1 FROM assignment a WHERE a.environment = transition.environment AND a.cluster = transition.cluster AND a.target = transition.target);

-- The ring and the base that folders had, from a time on: they change where no assignment does. What is wanted now is known from the last
-- transition on.
CREATE TABLE folder_history (
	environment INT NOT NULL, folder INT NOT NULL, at BIGINT NOT NULL, ring INT NOT NULL, base INT NOT NULL,
	PRIMARY KEY (environment, folder, at)
) /* WITHOUT ROWID */;
INSERT INTO folder_history (environment, folder, at, ring, base)
SELECT DISTINCT environment, folder, COALESCE((SELECT MAX(h.at) FROM transition h), 0), ring, base FROM wanted_target;
