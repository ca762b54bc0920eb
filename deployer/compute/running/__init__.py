"""Jobs on a declared cluster: started, followed, cancelled and resumed."""
