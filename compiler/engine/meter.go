package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
)

// Stats say, level by level, what a build computed and what it reused.
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
		to.Computed, to.Reused, to.Seconds = to.Computed+l.Computed, to.Reused+l.Reused, to.Seconds+l.Seconds
		to.ReadBytes, to.WrittenBytes = to.ReadBytes+l.ReadBytes, to.WrittenBytes+l.WrittenBytes
	}
}

// LevelStats are those of one level of the cache: the parts of evaluated packages
// and what functions of the assignment gave, the composed tuples, what was rendered,
// the emitted assignments.
type LevelStats struct {
	Level    cache.Level `json:"level"`
	Computed int         `json:"computed"`
	Reused   int         `json:"reused"`
	// Seconds were spent computing, added up over all processors.
	Seconds      float64 `json:"seconds"`
	ReadBytes    int64   `json:"readBytes"`    // of the cache
	WrittenBytes int64   `json:"writtenBytes"` // to the cache
}

// Meter is the cache of a build, and counts what it does for it. Any number of goroutines
// may use it.
type Meter struct {
	cache    *cache.Cache // nil for none
	identity cache.Key    // of what compiles
	before   map[cache.Level]cache.Stats
	levels   map[cache.Level]*counts
	// renders are under way: what several assignments render is rendered once.
	renders singleflight.Group
}

type counts struct {
	computed, reused atomic.Int64
	nanoseconds      atomic.Int64
}

// NewMeter returns the meter of a build with a cache, which may be nil. identity tells the
// compiler from any other that may give other results for the same input.
func NewMeter(c *cache.Cache, identity cache.Key) *Meter {
	m := &Meter{cache: c, identity: identity, levels: map[cache.Level]*counts{cache.Model: {},
		cache.Tuple: {}, cache.Projection: {}, cache.Assignment: {}}}
	if c != nil {
		m.before = c.Stats()
	}
	return m
}

// Stats returns what was computed and reused so far.
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

// count adds results to those of a level.
func (m *Meter) count(level cache.Level, computed, reused int) {
	m.levels[level].computed.Add(int64(computed))
	m.levels[level].reused.Add(int64(reused))
}

// took adds the time since start to that of a level.
func (m *Meter) took(level cache.Level, start time.Time) {
	m.levels[level].nanoseconds.Add(int64(time.Since(start)))
}

// table is where results of one kind are kept; that of a build without a cache
// keeps none.
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

// get and put keep single results; those of a build without a cache are not kept.
func (m *Meter) get(level cache.Level, key cache.Key) ([]byte, bool) {
	if m.cache == nil {
		return nil, false
	}
	return m.cache.Get(level, key)
}

// Packages is where the units of evaluated packages are kept; nil for nowhere.
func (m *Meter) Packages() evaluate.Cache {
	if m.cache == nil {
		return nil
	}
	return packageCache{m}
}

type packageCache struct{ *Meter }

// Get and Put keep units under their key and what evaluates them.
func (c packageCache) Get(key [32]byte) ([]byte, bool) {
	return c.cache.Get(cache.Model, c.packageKey(key))
}

func (c packageCache) Put(key [32]byte, data []byte) {
	c.cache.Put(cache.Model, c.packageKey(key), data)
}

// packageKey adds to a key of sources what evaluates them.
func (m *Meter) packageKey(key cache.Key) cache.Key {
	return cache.NewHash("package").Key(m.identity).Key(key).Sum()
}
