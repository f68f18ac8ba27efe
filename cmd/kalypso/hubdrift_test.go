package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// TestDriftOldest holds that the oldest are listed, on whichever page of the hub they are.
func TestDriftOldest(t *testing.T) {
	ages := [][]int{{3, 9}, {1}, {8, 2}} // of the rows of each page, in hours
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &page)
		out := api.Assignments{}
		for _, age := range ages[page] {
			out.Assignments = append(out.Assignments, state.Row{Cluster: fmt.Sprintf("c-%d", age), State: state.Behind, Changed: time.Date(2026, 11, 20, 12-age, 0, 0, 0, time.UTC)})
		}
		if page+1 < len(ages) {
			out.Next = fmt.Sprint(page + 1)
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(hub.Close)
	for limit, want := range map[string]string{"1": "c-9", "2": "c-9 c-8", "4": "c-9 c-8 c-3 c-2", "0": "c-9 c-8 c-3 c-2 c-1", "5": "c-9 c-8 c-3 c-2 c-1"} {
		var out, said bytes.Buffer
		code := execute(t.Context(), []string{"hub", "drift", "--hub", hub.URL, "--limit", limit}, streams{in: strings.NewReader(""), out: &out, err: &said})
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			got = append(got, strings.Fields(line)[0])
		}
		if more := strings.Contains(said.String(), "there are more than these "+limit); code != 0 || strings.Join(got, " ") != want || more != (limit == "1" || limit == "2" || limit == "4") {
			t.Errorf("--limit %s: %d, %v, %s", limit, code, got, said.String())
		}
	}
}
