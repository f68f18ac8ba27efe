package remote

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// FuzzAdvertisement checks that any advertisement of a server results in refs that git allows.
func FuzzAdvertisement(f *testing.F) {
	id := strings.Repeat("0a", 20)
	line := func(text string) string { return fmt.Sprintf("%04x%s\n", len(text)+5, text) }
	f.Add([]byte(line("# service=git-upload-pack") + "0000" + line(id+" HEAD\x00symref=HEAD:refs/heads/main filter shallow agent=git/2.39.5") + line(id+" refs/heads/main") +
		line(id+" refs/tags/v1") + line(id+" refs/tags/v1^{}") + line("shallow "+id) + "0000"))
	f.Add([]byte(line(id+" refs/heads/../x\x00symref=HEAD:refs/heads/../../x object-format=sha256") + "0000"))
	f.Add([]byte(line(strings.Repeat("0", 40)+" capabilities^{}\x00ofs-delta") + "0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		advertised := packp.NewAdvRefs()
		if advertised.Decode(bytes.NewReader(data)) != nil {
			return
		}
		a, err := understand(advertised)
		if err != nil {
			return
		}
		for ref := range a.refs {
			if !isRef(ref) || strings.Contains(ref, "..") {
				t.Errorf("%q is a ref", ref)
			}
		}
		for ref := range a.peeled {
			if !isRef(ref) {
				t.Errorf("%q is a tag", ref)
			}
		}
		if a.head != "" && !isRef(a.head) {
			t.Errorf("HEAD is %q", a.head)
		}
		a.tips()
		a.named()
	})
}
