package kubernetes

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestValidKey compares validKey with Kubernetes' own rule.
func TestValidKey(t *testing.T) {
	keys := []string{"", ".", "..", "..a", "a..", "a.b_c-D9", ".a", "-", "ä", "a b", "a/b", "\xff", "a\n",
		strings.Repeat("a", 253), strings.Repeat("a", 254)}
	draw := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		key := make([]byte, draw.IntN(4))
		for i := range key {
			key[i] = byte(draw.IntN(256))
		}
		keys = append(keys, string(key))
	}
	for b := range 256 {
		keys = append(keys, string([]byte{'a', byte(b), 'z'}))
	}
	for _, key := range keys {
		if want := len(validation.IsConfigMapKey(key)) == 0; validKey(key) != want {
			t.Errorf("validKey(%q) = %t, want %t", key, !want, want)
		}
	}
}
