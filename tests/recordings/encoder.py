# SPDX-License-Identifier: Apache-2.0
import torch
torch.manual_seed(0)
m=torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256,4,512,batch_first=True),3).cuda()
o=torch.optim.AdamW(m.parameters(),1e-4)
for i in range(4):
    x=torch.randn(8,64,256,device='cuda')
    m(x).square().mean().backward(); o.step(); o.zero_grad()
