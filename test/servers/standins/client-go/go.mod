module k8s.io/client-go

go 1.26

require (
	k8s.io/api v0.26.2
	k8s.io/apimachinery v0.26.2
)
