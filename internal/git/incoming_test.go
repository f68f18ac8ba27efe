package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// packed makes a pack of a repository whose objects are mostly differences to others,
// as git makes it, and returns the ids of all objects in it.
func packed(t testing.TB, options ...string) (pack []byte, ids []Hash) {
	t.Helper()
	r, dir := repository(t)
	var parents []Hash
	text := strings.Repeat("some text that stays as it is\n", 200)
	for i := range 20 {
		parents = []Hash{commit(t, r, fmt.Sprint(text, i), parents...)}
	}
	must(t, r.Update("refs/heads/main", Hash{}, parents[0], somebody, "m"))
	revs := "main\n"
	if len(options) > 0 && options[0] == "--thin" {
		revs += "^main~3\n"
	}
	cmd := exec.Command("git", append([]string{"-C", dir, "pack-objects", "--stdout", "--revs", "-q"}, options...)...)
	cmd.Stdin = strings.NewReader(revs)
	pack, err := cmd.Output()
	must(t, err)
	for line := range strings.Lines(run(t, "", "git", "-C", dir, "rev-list", "--objects", "main")) {
		id, _ := leadingID(line)
		ids = append(ids, id)
	}
	return pack, ids
}

func TestReceivePack(t *testing.T) {
	for _, options := range [][]string{nil, {"--delta-base-offset"}, {"--window=0"}} {
		pack, ids := packed(t, options...)
		r, dir := repository(t)
		p, err := r.ReceivePack(t.Context(), bytes.NewReader(pack), int64(len(pack)))
		must(t, err)
		if absent, err := r.Absent(ids); err != nil || len(absent) != len(ids) {
			t.Errorf("%d of %d objects are there before Finish, %v", len(ids)-len(absent), len(ids), err)
		}
		must(t, p.Finish(false))
		if absent, err := r.Absent(append(ids, Hash{1}, Hash{1})); err != nil || len(absent) != 1 || absent[0] != (Hash{1}) {
			t.Errorf("%v, %v", absent, err)
		}
		for _, id := range ids {
			if _, err := r.Object(id); err != nil {
				t.Error(err)
			}
		}
		packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.idx"))
		if len(packs) != 1 {
			t.Fatal(packs)
		}
		run(t, "", "git", "-C", dir, "verify-pack", packs[0])
	}
}

// For any error in a pack, no part of the pack is kept.
func TestReceiveDamagedPack(t *testing.T) {
	sound, _ := packed(t)
	thin, _ := packed(t, "--thin")
	r, dir := repository(t)
	packs := map[string][]byte{"thin": thin, "empty": nil, "cut": sound[:len(sound)-1], "longer": append(bytes.Clone(sound), 0)}
	for at := 0; at < len(sound); at += 37 {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 0x55
		packs[fmt.Sprint("damaged at ", at)] = damaged
	}
	for name, pack := range packs {
		if _, err := r.ReceivePack(t.Context(), bytes.NewReader(pack), 1<<20); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := r.ReceivePack(t.Context(), bytes.NewReader(sound), int64(len(sound)-1)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.ReceivePack(ctx, bytes.NewReader(sound), 1<<20); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); len(left) > 0 {
		t.Error(left)
	}
}

// If a few bytes of deltas claim a wrong size, or expand beyond the limit, ReceivePack rejects
// them before it computes the object.
func TestReceiveDeltaBomb(t *testing.T) {
	compressed := func(data []byte) []byte {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := z.Write(data)
		must(t, errors.Join(err, z.Close()))
		return b.Bytes()
	}
	head := func(kind Kind, size int) []byte {
		b := []byte{byte(kind)<<4 | byte(size&15)}
		for size >>= 4; size > 0; size >>= 7 {
			b[len(b)-1] |= 0x80
			b = append(b, byte(size&0x7f))
		}
		return b
	}
	base := bytes.Repeat([]byte("x"), 1<<16)
	whole := append(head(BlobKind, len(base)), compressed(base)...)
	// delta returns a delta with copies of the base, and the size that it claims to make.
	delta := func(size uint64, copies int) []byte {
		b := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base))), size)
		return append(b, bytes.Repeat([]byte{0x80}, copies)...) // all 64 KiB from the beginning
	}
	r, dir := repository(t)
	for name, data := range map[string][]byte{
		"says more":  delta(maxObject+1, 1),
		"says 2^63":  delta(1<<63, 1),
		"makes more": delta(1<<16, 1<<16),
		"makes less": delta(maxObject, 1),
		"sound":      delta(1<<17, 2),
	} {
		pack := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02"), whole...)
		id := ID(BlobKind, base)
		pack = append(append(append(pack, head(idDelta, len(data))...), id[:]...), compressed(data)...)
		sum := sha1.Sum(pack)
		before := allocated()
		received, err := r.ReceivePack(t.Context(), bytes.NewReader(append(pack, sum[:]...)), 1<<30)
		if (err == nil) != (name == "sound") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			must(t, received.Abort())
		}
		if grown := allocated() - before; grown > 64<<20 {
			t.Errorf("%s: %d bytes are allocated", name, grown)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); len(left) > 0 {
		t.Error(left)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// FuzzReceivePack: no pack panics, or stays when it is discarded.
//
// Slow: each input is a file on the disk.
func FuzzReceivePack(f *testing.F) {
	pack, _ := packed(f)
	f.Add(pack)
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x30"))
	r, _ := repository(f)
	f.Fuzz(func(t *testing.T, pack []byte) {
		if p, err := r.ReceivePack(t.Context(), bytes.NewReader(pack), 1<<20); err == nil {
			must(t, p.Abort())
		}
	})
}

// Missing adds a missing object, which is then read.
func TestMissingIsCalled(t *testing.T) {
	r, _ := repository(t)
	asked := 0
	r.Missing = func(id Hash) error {
		if asked++; id == (Hash{1}) {
			return errors.New("nobody has it")
		}
		w := r.NewPack()
		_, err := w.Add(BlobKind, []byte("brought"))
		return errors.Join(err, w.Finish())
	}
	for range 2 {
		if data, err := r.Blob(ID(BlobKind, []byte("brought"))); err != nil || string(data) != "brought" || asked != 1 {
			t.Errorf("%q, %v, asked %d times", data, err, asked)
		}
	}
	if _, err := r.Object(Hash{1}); err == nil || err.Error() != "nobody has it" {
		t.Error(err)
	}
	var missing *MissingError
	if _, err := r.Object(Hash{2}); !errors.As(err, &missing) {
		t.Error(err)
	}
}
