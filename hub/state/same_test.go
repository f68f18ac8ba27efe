package state

import (
	"fmt"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// The wanted state is read again if any part of it may differ.
func TestSameWanted(t *testing.T) {
	same := func(w *DesiredState) string {
		if w.Same(&DesiredState{Commits: []Commit{{}}}) {
			return ""
		}
		return fmt.Sprintf("%+v", *w)
	}
	const commit = "it follows from the commit"
	fieldtest.Check(t, func() *DesiredState { return &DesiredState{Commits: []Commit{{}}} }, same, map[string]string{
		"Environment": "what is wanted of one environment is compared",
		"Older":       commit, "Folders": commit, "Clusters": commit, "Commits": "the newest counts",
	})
	fieldtest.Check(t, func() *Commit { return &Commit{} }, func(c *Commit) string {
		return same(&DesiredState{Commits: []Commit{*c}})
	}, map[string]string{"Time": commit, "Author": commit, "Subject": commit, "Rings": commit, "Was": commit, "Effect": commit})
}
