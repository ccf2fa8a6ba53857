// Command generate writes the files that package nomad makes: the jobs of Topsail's roles,
// which are checked in, and the pack, which is not.
package main

import (
	"flag"
	"log"

	"github.com/topsail-serving/topsail/nomad"
)

func main() {
	jobs := flag.String("jobs", "", "folder to write the jobs of Topsail's roles into")
	pack := flag.String("pack", "", "new folder to write the pack into")
	flag.Parse()
	if *jobs != "" {
		if err := nomad.WriteJobs(*jobs); err != nil {
			log.Fatal(err)
		}
	}
	if *pack != "" {
		if err := nomad.WritePack(*pack); err != nil {
			log.Fatal(err)
		}
	}
}
