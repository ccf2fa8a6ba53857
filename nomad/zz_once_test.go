package nomad

import ("testing";"os";"net/http";"net/http/httptest";"time";"fmt")

func TestOnceDocker(t *testing.T) {
	c := shared
	time.Sleep(4*time.Second)
	for _, r := range []string{"gateway","scheduler","web"} {
		v := variables{"driver":"docker","image":"topsail-standin:1", "consul_identity": false}
		n := 1
		if r != "scheduler" { v["port"]=0 } else { n = 2; v["nomad_addr"]="unix://${NOMAD_SECRETS_DIR}/api.sock" }
		c.run(t, r, v)
		for _, s := range c.ready(t, "topsail-"+r, n) {
			env := environment(t, http.DefaultClient, "http://"+s.Service.Meta["ops_addr"])
			fmt.Println(r, env["TOPSAIL_OPS_ADDR"], env["TOPSAIL_DATA_DIR"], env["NOMAD_ADDR"], env["role"])
		}
	}
}
func TestOnceExec(t *testing.T) {
	c := shared
	text, _ := os.ReadFile("/tmp/nomadgen/d/topsail")
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	defer files.Close()
	c.run(t, "scheduler", variables{"driver":"exec","program":files.URL+"/topsail","count":1,"nomad_addr":"unix://${NOMAD_SECRETS_DIR}/api.sock"})
	for _, s := range c.ready(t, "topsail-scheduler", 1) {
		env := environment(t, http.DefaultClient, "http://"+s.Service.Meta["ops_addr"])
		fmt.Println("exec", env["TOPSAIL_OPS_ADDR"], env["TOPSAIL_DATA_DIR"], env["NOMAD_ADDR"], env["role"])
	}
}
