import os, subprocess, sys
from tests.conftest import *
def test_it(postgresql_url, tmp_path):
    done = subprocess.run([sys.executable,"-m","pytest","-q","-p","no:cacheprovider","tests/webapp/triage/test_search.py","tests/webapp/notices","tests/webapp/accounts/test_second_factor.py"],cwd="/work/main",env=os.environ|{"PEERPATH_DATABASE_URL":postgresql_url,"PEERPATH_DATA":str(tmp_path)},capture_output=True,text=True)
    print(done.stdout[-6000:])
    assert done.returncode==0
