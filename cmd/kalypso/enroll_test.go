package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/hub/api"
)

// A cluster whose token is refused is enrolled again once somebody has removed the file, and not before.
func TestEnrollAgain(t *testing.T) {
	enrolled := 0
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case is == "enroll":
			enrolled++
			fmt.Fprintf(w, `{"secret": "own-%d"}`, enrolled)
		case is == "own-2":
			fmt.Fprint(w, `{}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"status": 401, "detail": "revoked"}`)
		}
	}))
	defer hub.Close()
	folder := t.TempDir()
	own, enroll := filepath.Join(folder, "own"), filepath.Join(folder, "enroll")
	if err := os.WriteFile(enroll, []byte("enroll\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &observer{console: &console{}, cluster: "eu-1", hub: hubOptions{hub.URL, own}, enrollTokenFile: enroll}
	deliver, err := o.sender(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		_, _, err := deliver(t.Context(), []api.Report{{Cluster: "eu-1"}})
		return err
	}
	for range 2 {
		if err := send(); err == nil || !strings.HasSuffix(err.Error(), "; to enrol cluster eu-1 again, remove "+own) || enrolled != 1 {
			t.Errorf("with a token that is refused: %v, enrolled %d times", err, enrolled)
		}
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := send(); err != nil || enrolled != 2 {
			t.Errorf("without its file: %v, enrolled %d times", err, enrolled)
		}
	}
}
