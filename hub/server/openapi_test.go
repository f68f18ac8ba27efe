package server_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/kalypso-io/kalypso/hub/server"
)

// TestOpenAPI checks that openapi.yaml is the description of the API, so that each change for
// clients changes that file. KALYPSO_UPDATE=1 writes it again.
func TestOpenAPI(t *testing.T) {
	is, err := server.OpenAPI("v1")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KALYPSO_UPDATE") == "1" {
		if err := os.WriteFile("openapi.yaml", is, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile("openapi.yaml"); err != nil || !bytes.Equal(was, is) {
		t.Errorf("openapi.yaml is not what the server describes (%v): look at the difference, and write it with KALYPSO_UPDATE=1", err)
	}
}
