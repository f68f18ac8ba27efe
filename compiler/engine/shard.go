package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Shard is a part of the cluster types of every environment, so that several
// machines can build a fleet together: the shards 1/n to n/n have each cluster
// type once, and which one has it follows from its name alone. The zero Shard has
// all.
type Shard struct {
	Index, Of int // Index counts from 1
}

// ParseShard reads i/n.
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || index < 1 || index > of {
		return Shard{}, fmt.Errorf("%q is no shard: write 1/4 for the first of four", s)
	}
	return Shard{index, of}, nil
}

// Has says whether a cluster type is of the shard.
func (s Shard) Has(clusterType string) bool {
	if s.Of <= 1 {
		return true
	}
	sum := sha256.Sum256([]byte(clusterType))
	return binary.BigEndian.Uint64(sum[:])%uint64(s.Of) == uint64(s.Index-1)
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }
