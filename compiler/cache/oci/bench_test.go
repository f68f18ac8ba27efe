package oci

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// BenchmarkTransfer measures the cost of an entry without the network: one new Put, and one Get,
// with the registry in the same process.
func BenchmarkTransfer(b *testing.B) {
	b.Setenv("DOCKER_CONFIG", b.TempDir())
	c, err := Open(ocitest.New(b, nil).Reference("acme/cache"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1 << 10, 1 << 20, 16 << 20} {
		data := bytes.Repeat([]byte("x"), size)
		b.Run(fmt.Sprintf("put/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for i := range b.N {
				copy(data, fmt.Sprint(b.N, " ", i, " ")) // another blob each time
				if err := c.Put(b.Context(), "entry/put", data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("get/%d", size), func(b *testing.B) {
			if err := c.Put(b.Context(), "entry/get", data); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Get(b.Context(), "entry/get"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
