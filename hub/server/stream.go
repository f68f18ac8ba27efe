package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// atOnce is how many assignments are read with the fleet locked: a client may be slow.
const atOnce = 10_000

// rollout answers with each assignment on a cluster that an environment wants, a line each, and
// a last line that names the commit of the GitOps branch, which is one for all of them.
func (s *server) rollout(w http.ResponseWriter, r *http.Request) {
	environments, err := s.sees(r.Context(), r.URL.Query().Get("environment"))
	if err != nil || len(environments) != 1 {
		problem(w, http.StatusForbidden, "name an environment that you may see")
		return
	}
	environment := environments[0]
	if !slices.ContainsFunc(s.Hub.Fleet().Environments(),
		func(w *state.Wanted) bool { return w.Environment == environment }) {
		problem(w, http.StatusNotFound, "this hub knows no environment "+environment)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	filter := state.Filter{Environments: environments, Ring: r.URL.Query().Get("ring")}
	commit, after := "", state.Position{}
	for first := true; ; first = false {
		var rows []state.Row
		is := s.Hub.Fleet().Rollout(filter, after, func(row state.Row) bool {
			rows = append(rows, row)
			return len(rows) < atOnce
		})
		if !first && is != commit {
			return // the answer is cut off, and the client asks again
		}
		commit = is
		for i := range rows {
			if lines.Encode(&rows[i]) != nil {
				return
			}
		}
		if len(rows) < atOnce {
			break
		}
		after = rows[len(rows)-1].Position()
	}
	_ = lines.Encode(api.RolloutEnd{End: true, GitOps: commit})
}

// pause is the least time between two events.
const pause = 500 * time.Millisecond

// events tells of changes as server-sent events. Where there are none, a comment now and then shows
// whether the client is there.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if _, err := allow(r.Context(), access.Viewer); err != nil {
		problem(w, http.StatusForbidden, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	beat := time.NewTicker(s.Beat)
	defer beat.Stop()
	version, changed := s.Hub.Version()
	for text := event(version); ; {
		if _, err := io.WriteString(w, text); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			text = ": waiting\n\n"
			continue
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return
		}
		version, changed = s.Hub.Version()
		text = event(version)
	}
}

func event(version uint64) string {
	return fmt.Sprintf("event: change\ndata: {\"version\":%q}\n\n", versionName(version))
}
