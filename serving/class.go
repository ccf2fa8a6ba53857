package serving

import "fmt"

// Priorities is how many there are: 0, the highest, to LowestPriority.
const (
	Priorities     = 4
	LowestPriority = Priorities - 1
)

// Class says for whom a query takes capacity that is short.
type Class struct {
	App      string  // "": not known
	Priority int     // what waits of a higher one goes first
	Weight   float64 // beside other apps of the same priority; 0 is 1
	MinShare float64 // the part of the capacity that the app gets even where higher priorities want all
}

func checkPriority(p int) error {
	if p < 0 || p > LowestPriority {
		return fmt.Errorf("priority must be between 0, the highest, and %d", LowestPriority)
	}
	return nil
}
