package plan

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// The token of an http gate is for its server, and not for others that it leads to.
func TestPostRedirect(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(gate.Close)
	t.Setenv("BOARD_TOKEN", "secret")
	_, err := post(t.Context(), model.HTTPGate{URL: gate.URL, TokenFrom: "BOARD_TOKEN", Timeout: time.Minute}, []byte("{}"))
	if err != nil || strings.Join(got, ", ") != "Bearer secret, " {
		t.Errorf("%q, %v", got, err)
	}
}
