//go:build !unix

package regular

// nonBlocking is no flag: folders hold no pipes.
const nonBlocking = 0

const noFollow = 0
