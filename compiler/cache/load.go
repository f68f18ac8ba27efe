package cache

import "crypto/sha256"

// load reads the manifest and the indexes of a table, once.
func (t *Table) load() {
	t.mu.RLock()
	loaded := t.loaded
	t.mu.RUnlock()
	if loaded {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded {
		return
	}
	t.loaded = true
	segments, _ := t.manifest()
	for _, s := range segments {
		if section := t.loadSegment(s); section != nil {
			section.old = true
			if before := t.released[s.id]; before != nil {
				section.used, section.old = before.used, before.old
			}
			t.segments = append(t.segments, section)
		}
	}
}

// Release lets go of what the table has in memory: what is asked for next is read again.
// What was put and not flushed stays, and so does what a process that verifies has used.
func (t *Table) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending != nil || len(t.adopted) > 0 || t.c.mode == Verify {
		return
	}
	for _, s := range t.segments { // what ages later is what nobody used
		t.released[s.id] = &section{used: s.used, old: s.old}
	}
	t.segments, t.loaded = nil, false
}

// manifest reads the manifest in the folder, and returns the hash of the file
// with it. A manifest that is damaged has no segments.
func (t *Table) manifest() ([]segment, digest) {
	data, file, ok := t.c.store.get(t.id)
	if !ok {
		return nil, digest{}
	}
	segments, _ := t.parseManifest(data)
	return segments, file
}

func (t *Table) parseManifest(data []byte) ([]segment, bool) {
	payload, ok := t.header().open(data)
	if !ok {
		return nil, false
	}
	return decodeManifest(payload)
}

// loadSegment reads an index. It returns nil if the index is damaged or missing,
// or its data file is missing and cannot come from the remote cache.
func (t *Table) loadSegment(s segment) *section {
	if !t.isHere(s) && !t.c.remote.usable() {
		return nil
	}
	text, ok := t.c.store.blob(s.id, s.indexSize)
	if !ok {
		if !t.fetchBlob(s.id, s.indexSize) {
			return nil
		}
		if text, ok = t.c.store.blob(s.id, s.indexSize); !ok {
			return nil
		}
	}
	x, ok := decodeIndex(text, t.level, t.name)
	if !ok || x.data != s.data || x.dataSize != s.dataSize || x.n != s.entries {
		return nil
	}
	t.c.count(t.level, Stats{ReadBytes: s.indexSize})
	return t.newSection(s, x)
}

// isHere says whether the data file of a segment is in the folder.
func (t *Table) isHere(s segment) bool {
	return s.dataSize == 0 || t.c.store.has(s.data, s.dataSize)
}

// wantsRemote says whether the remote manifest should be asked for. It is asked
// for at most once, when something is not in the folder.
func (t *Table) wantsRemote() bool {
	return t.c.mode == On && !t.asked && t.c.remote.usable()
}

// ask merges the remote manifest into the table. Its segments count as older
// than those of the folder.
func (t *Table) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return
	}
	t.asked = true
	known := map[digest]bool{}
	for _, s := range t.segments {
		known[s.id] = true
	}
	var fetched []*section
	segments, _ := t.remoteManifest()
	for _, s := range segments {
		if known[s.id] {
			continue
		}
		if section := t.loadSegment(s); section != nil {
			section.old = true
			fetched = append(fetched, section)
			t.adopted = append(t.adopted, s)
		}
	}
	t.segments = append(fetched, t.segments...)
}

func (t *Table) remoteManifest() (segments []segment, err error) {
	_, err = t.c.remote.get(tableName(t.id), func(data []byte) (ok bool) {
		segments, ok = t.parseManifest(data)
		return ok
	})
	return segments, err
}

// fetchBlob gets a file of a segment from the remote cache into the folder.
func (t *Table) fetchBlob(id digest, size int64) bool {
	if t.c.mode != On {
		return false
	}
	data, err := t.c.remote.get(blobName(id), func(data []byte) bool {
		return int64(len(data)) == size && sha256.Sum256(data) == id
	})
	if err != nil {
		return false
	}
	if _, err := t.c.store.writeBlob(data); err != nil {
		t.c.remember(err)
		return false
	}
	t.c.wrote(t.level, size)
	return true
}
