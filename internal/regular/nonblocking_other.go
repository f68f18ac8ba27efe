//go:build !unix

package regular

// nonBlocking is not a flag here: folders hold no pipes.
const nonBlocking = 0

const noFollow = 0
