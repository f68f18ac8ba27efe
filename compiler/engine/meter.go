package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
)

// Stats count the computed and the reused results of a build, by level of the cache.
type Stats struct {
	Levels []LevelStats `json:"levels"`
}

// Add adds the statistics of another build.
func (s *Stats) Add(other Stats) {
	for _, l := range other.Levels {
		i := slices.IndexFunc(s.Levels, func(of LevelStats) bool { return of.Level == l.Level })
		if i < 0 {
			s.Levels = append(s.Levels, l)
			continue
		}
		to := &s.Levels[i]
		to.Computed, to.Reused, to.Seconds = to.Computed+l.Computed, to.Reused+l.Reused,
			to.Seconds+l.Seconds
		to.ReadBytes, to.WrittenBytes = to.ReadBytes+l.ReadBytes, to.WrittenBytes+l.WrittenBytes
	}
}

// LevelStats are the statistics of one level of the cache. The levels are the parts of evaluated
// packages with the results of functions of the assignment, the composed tuples, the rendered
// manifests, and the emitted assignments.
type LevelStats struct {
	Level    cache.Level `json:"level"`
	Computed int         `json:"computed"`
	Reused   int         `json:"reused"`
	// Seconds is the time spent on computing, summed over all processors.
	Seconds      float64 `json:"seconds"`
	ReadBytes    int64   `json:"readBytes"`    // from the cache
	WrittenBytes int64   `json:"writtenBytes"` // to the cache
}

// Meter is the cache of a build, and counts its uses. It is safe for concurrent use by multiple
// goroutines.
type Meter struct {
	cache    *cache.Cache // nil if there is no cache
	identity cache.Key    // of the compiler
	before   map[cache.Level]cache.Stats
	levels   map[cache.Level]*counts
	// renders are the renders in progress, so that assignments with the same render share it.
	renders singleflight.Group
}

type counts struct {
	computed, reused atomic.Int64
	nanoseconds      atomic.Int64
}

// NewMeter returns the meter of a build with a cache, which may be nil. identity distinguishes
// compilers that may give different results for the same input.
func NewMeter(c *cache.Cache, identity cache.Key) *Meter {
	m := &Meter{cache: c, identity: identity, levels: map[cache.Level]*counts{cache.Model: {},
		cache.Tuple: {}, cache.Projection: {}, cache.Assignment: {}}}
	if c != nil {
		m.before = c.Stats()
	}
	return m
}

// Stats returns the computed and the reused results so far, in the order of the levels.
func (m *Meter) Stats() Stats {
	var s Stats
	now := map[cache.Level]cache.Stats{}
	if m.cache != nil {
		now = m.cache.Stats()
	}
	for _, level := range []cache.Level{cache.Model, cache.Tuple, cache.Projection, cache.Assignment} {
		c := m.levels[level]
		s.Levels = append(s.Levels, LevelStats{
			Level:        level,
			Computed:     int(c.computed.Load()),
			Reused:       int(c.reused.Load()),
			Seconds:      time.Duration(c.nanoseconds.Load()).Seconds(),
			ReadBytes:    now[level].ReadBytes - m.before[level].ReadBytes,
			WrittenBytes: now[level].WrittenBytes - m.before[level].WrittenBytes,
		})
	}
	return s
}

// count adds to the computed and the reused results of a level.
func (m *Meter) count(level cache.Level, computed, reused int) {
	m.levels[level].computed.Add(int64(computed))
	m.levels[level].reused.Add(int64(reused))
}

// took adds the time since start to the time of a level.
func (m *Meter) took(level cache.Level, start time.Time) {
	m.levels[level].nanoseconds.Add(int64(time.Since(start)))
}

// table is a cache table for results of one kind. Without a cache it is a noTable, which keeps
// nothing.
type table interface {
	Get(cache.Key) ([]byte, bool)
	Put(cache.Key, []byte)
	Flush() error
	Release()
}

type noTable struct{}

// Get finds nothing, Put keeps nothing, and Flush and Release do nothing.
func (noTable) Get(cache.Key) ([]byte, bool) { return nil, false }
func (noTable) Put(cache.Key, []byte)        {}
func (noTable) Flush() error                 { return nil }
func (noTable) Release()                     {}

func (m *Meter) table(level cache.Level, name string) table {
	if m.cache == nil {
		return noTable{}
	}
	return m.cache.Table(level, name)
}

// get returns a single cached result. Without a cache it finds nothing.
func (m *Meter) get(level cache.Level, key cache.Key) ([]byte, bool) {
	if m.cache == nil {
		return nil, false
	}
	return m.cache.Get(level, key)
}

// Packages returns the cache for the units of evaluated packages. It returns nil if there is no
// cache.
func (m *Meter) Packages() evaluate.Cache {
	if m.cache == nil {
		return nil
	}
	return packageCache{m}
}

type packageCache struct{ *Meter }

// Get and Put store units under their key and the identity of the compiler.
func (c packageCache) Get(key [32]byte) ([]byte, bool) {
	return c.cache.Get(cache.Model, c.packageKey(key))
}

func (c packageCache) Put(key [32]byte, data []byte) {
	c.cache.Put(cache.Model, c.packageKey(key), data)
}

// packageKey adds the identity of the compiler to a key of sources.
func (m *Meter) packageKey(key cache.Key) cache.Key {
	return cache.NewHash("package").Key(m.identity).Key(key).Sum()
}
